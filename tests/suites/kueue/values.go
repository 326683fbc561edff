// Package values reads metrics of Unisono where a spec reads those of its own process. It is ours.
package values

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"sigs.k8s.io/kueue/test/suite"
)

var named = regexp.MustCompile(`fqName: "([^"]+)"`)

// GetGaugeMetricValue returns 0 for a series that is not there, as a registry does for a new one.
func GetGaugeMetricValue(metric prometheus.Gauge) (float64, error) {
	found, err := find(metric)
	if found == nil || err != nil {
		return 0, err
	}
	return found.GetGauge().GetValue(), nil
}

func GetCounterMetricValue(metric prometheus.Counter) (float64, error) {
	found, err := find(metric)
	if found == nil || err != nil {
		return 0, err
	}
	return found.GetCounter().GetValue(), nil
}

func GetHistogramMetricCount(observer prometheus.Observer) (uint64, error) {
	found, err := find(observer.(prometheus.Metric))
	if found == nil || err != nil {
		return 0, err
	}
	return found.GetHistogram().GetSampleCount(), nil
}

// CollectFilteredGaugeVec returns the values of the series of a gauge that have these labels.
func CollectFilteredGaugeVec(vector prometheus.Collector, labels map[string]string) ([]float64, error) {
	descriptions := make(chan *prometheus.Desc, 1)
	vector.Describe(descriptions)
	series, err := seriesOf((<-descriptions).String())
	wanted := []*dto.LabelPair{}
	for name, value := range labels {
		wanted = append(wanted, &dto.LabelPair{Name: &name, Value: &value})
	}
	found := []float64{}
	for _, one := range series {
		if covers(one.Label, wanted) {
			found = append(found, one.GetGauge().GetValue())
		}
	}
	return found, err
}

// seriesOf returns the series of the metric of a description, none if it has none yet.
func seriesOf(description string) ([]*dto.Metric, error) {
	name := named.FindStringSubmatch(description)[1]
	page, err := suite.Ask("metrics", nil)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		return nil, err
	}
	family := families[name]
	if family == nil && !strings.Contains(page, "# TYPE "+name+" ") {
		return nil, fmt.Errorf("no metric %s", name)
	}
	if family == nil {
		return nil, nil
	}
	return family.Metric, nil
}

func find(metric prometheus.Metric) (*dto.Metric, error) {
	wanted := dto.Metric{}
	if err := metric.Write(&wanted); err != nil {
		return nil, err
	}
	series, err := seriesOf(metric.Desc().String())
	if err != nil {
		return nil, err
	}
	for _, one := range series {
		if covers(one.Label, wanted.Label) {
			return one, nil
		}
	}
	return nil, nil
}

func covers(have, wanted []*dto.LabelPair) bool {
	values := map[string]string{}
	for _, label := range have {
		values[label.GetName()] = label.GetValue()
	}
	for _, label := range wanted {
		// A replica on a cluster is elected, so it is the leader; specs expect one by itself.
		if label.GetName() != "replica_role" && values[label.GetName()] != label.GetValue() {
			return false
		}
	}
	return true
}
