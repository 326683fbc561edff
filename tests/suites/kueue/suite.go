// Package suite connects specs of Kueue to the program that runs them against Unisono.
//
// It is ours; it is compiled into the test programs beside its files (build.py), and asks the runner
// (cluster.py) over HTTP on loopback for a cluster, for a manager with a configuration, and for the
// metrics of that manager.
package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
)

// What the set-up functions of a suite were given, as the patched functions note it.
var (
	Configuration   *configapi.Configuration
	Transformations []configapi.ResourceTransformation
	Excluded        []string
	QuotaChecks     configapi.QuotaCheckStrategy
	FairSharing     *configapi.FairSharing
)

// Forget what was noted for the manager before.
func Forget() {
	Configuration, Transformations, Excluded = nil, nil, nil
	QuotaChecks, FairSharing = "", nil
}

// Wanted returns the configuration that a manager is wanted with.
func Wanted() ([]byte, error) {
	wanted := configapi.Configuration{}
	if Configuration != nil {
		wanted = *Configuration.DeepCopy()
	}
	if wanted.FairSharing == nil {
		wanted.FairSharing = FairSharing
	}
	if len(Transformations)+len(Excluded) > 0 || QuotaChecks != "" {
		if wanted.Resources == nil {
			wanted.Resources = &configapi.Resources{}
		}
		if len(Transformations) > 0 {
			wanted.Resources.Transformations = Transformations
		}
		if len(Excluded) > 0 {
			wanted.Resources.ExcludeResourcePrefixes = Excluded
		}
		if QuotaChecks != "" {
			wanted.Resources.QuotaCheckStrategy = &QuotaChecks
		}
	}
	return json.Marshal(wanted)
}

// Ask the runner for something; it answers when that is so.
func Ask(what string, body []byte) (string, error) {
	response, err := http.Post(os.Getenv("UNISONO_SUITE")+"/"+what, "application/json", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", what, text)
	}
	return string(text), nil
}

// SkipsMetrics says whether expectations about metrics are left out.
func SkipsMetrics() bool {
	return os.Getenv("UNISONO_SUITE_METRICS") == "skip"
}
