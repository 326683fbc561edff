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

func find(metric prometheus.Metric) (*dto.Metric, error) {
	name := named.FindStringSubmatch(metric.Desc().String())[1]
	wanted := dto.Metric{}
	if err := metric.Write(&wanted); err != nil {
		return nil, err
	}
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
	if family == nil { // without any series yet
		return nil, nil
	}
	for _, one := range family.Metric {
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
		if values[label.GetName()] != label.GetValue() {
			return false
		}
	}
	return true
}
