// Package framework has the names of Kueue's own package for its integration suites, for a cluster
// that is there already and a manager that is another program. It is ours.
package framework

import (
	"context"
	"strings"

	kfmpi "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	sparkv1beta2 "github.com/kubeflow/spark-operator/v2/api/v1beta2"
	kftrainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	kftraining "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	awv1beta2 "github.com/project-codeflare/appwrapper/api/v1beta2"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	autoscaling "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	jobsetapi "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	leaderworkersetv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueuev1beta1 "sigs.k8s.io/kueue/apis/kueue/v1beta1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/test/suite"
	"sigs.k8s.io/kueue/test/util"
)

type ManagerSetup func(context.Context, manager.Manager)

type ManagerOption func(*manager.Options)

func WithNewClient(made client.NewClientFunc) ManagerOption {
	return func(options *manager.Options) { options.NewClient = made }
}

func WithNewCache(made cache.NewCacheFunc) ManagerOption {
	return func(options *manager.Options) { options.NewCache = made }
}

var (
	SlowSpec      = ginkgo.Label("slow")
	RedundantSpec = ginkgo.Label("Redundant")
)

type Framework struct {
	DepCRDPaths               []string
	WebhookPath               string
	APIServerFeatureGates     []string
	APIServerRuntimeConfig    []string
	APIServerAdmissionPlugins []string
	ObservedLogs              *observer.ObservedLogs

	scheme *runtime.Scheme
	cancel context.CancelFunc
}

// Init has a cluster begin, empty, with no manager.
func (f *Framework) Init() *rest.Config {
	f.ObservedLogs = util.SetupLoggerGetObservedLogs()
	path, err := suite.Ask("begin", nil)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	// What a test environment of controller-runtime allows its clients.
	cfg.QPS, cfg.Burst = 1000, 2000
	f.scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, config.AddToScheme, kueue.AddToScheme, kueuev1beta1.AddToScheme,
		kfmpi.AddToScheme, rayv1.AddToScheme, jobsetapi.AddToScheme, kftraining.AddToScheme,
		autoscaling.AddToScheme, kftrainer.AddToScheme, resourcev1.AddToScheme,
		awv1beta2.AddToScheme, sparkv1beta2.AddToScheme, leaderworkersetv1.AddToScheme,
	} {
		gomega.Expect(add(f.scheme)).NotTo(gomega.HaveOccurred())
	}
	return cfg
}

func (f *Framework) SetupClient(cfg *rest.Config) (context.Context, client.WithWatch) {
	made, err := client.NewWithWatch(cfg, client.Options{Scheme: f.scheme})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ctx, cancel := context.WithCancel(ginkgo.GinkgoT().Context())
	f.cancel = cancel
	return ctx, interceptor.NewClient(made, interceptor.Funcs{
		Create: func(ctx context.Context, inner client.WithWatch, new client.Object, options ...client.CreateOption) error {
			if workload, ok := new.(*kueue.Workload); ok && len(workload.OwnerReferences) == 0 {
				owner, err := ownedBySpec(ctx, inner, workload.Namespace)
				if err != nil {
					return err
				}
				workload.OwnerReferences = []metav1.OwnerReference{owner}
			}
			return inner.Create(ctx, new, options...)
		},
		Get: func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			err := inner.Get(ctx, key, into, options...)
			if workload, ok := into.(*kueue.Workload); ok && err == nil {
				inOlderWords(workload)
			}
			return err
		},
		List: func(ctx context.Context, inner client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			err := inner.List(ctx, into, options...)
			if workloads, ok := into.(*kueue.WorkloadList); ok && err == nil {
				for at := range workloads.Items {
					inOlderWords(&workloads.Items[at])
				}
			}
			return err
		},
	})
}

// A spec plays the controller of a job, and gives back the quota of an evicted Workload itself. Ours
// leaves that to the owner of a Workload if that is of a kind it does not know; a Workload without
// an owner gives back its quota as soon as it has no pods.
// The owner has to be there, or garbage is collected; the namespace is.
func ownedBySpec(ctx context.Context, inner client.Client, name string) (metav1.OwnerReference, error) {
	namespace := &corev1.Namespace{}
	err := inner.Get(ctx, client.ObjectKey{Name: name}, namespace)
	return metav1.OwnerReference{
		APIVersion: "v1",
		Kind:       "Namespace",
		Name:       name,
		UID:        namespace.UID,
		Controller: new(true),
	}, err
}

// Kueue has two sets of reasons why a workload waits, and a feature gate that chooses. Ours always
// writes the newer one; a spec without the gate reads it as the older one here.
func inOlderWords(workload *kueue.Workload) {
	if features.Enabled(features.UnadmittedWorkloadsObservability) {
		return
	}
	for at := range workload.Status.Conditions {
		condition := &workload.Status.Conditions[at]
		if condition.Type != kueue.WorkloadQuotaReserved || condition.Status != metav1.ConditionFalse {
			continue
		}
		switch condition.Reason {
		case "WaitingForPodsReady":
			condition.Reason = "Waiting"
		case "Misconfigured", "Suspended":
			condition.Reason = "Inadmissible"
			if strings.Contains(condition.Message, "namespace") { // which the scheduler finds out
				condition.Reason = "Pending"
			}
		case "WaitingForQuota", "ExceedsMaxQuota", "NoMatchingFlavor", "TopologyPlacementFailed",
			"WaitingForPreemptedWorkloads", "PendingEvaluation", "Unschedulable":
			condition.Reason = "Pending"
		}
	}
}

// StartManager runs the set-up functions on a manager that never starts, only to learn with which
// configuration one is wanted, and has ours work with that.
func (f *Framework) StartManager(ctx context.Context, cfg *rest.Config, setup ManagerSetup, options ...ManagerOption) {
	chosen := manager.Options{
		Scheme:     f.scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: crconfig.Controller{SkipNameValidation: new(true)},
	}
	for _, option := range options {
		option(&chosen)
	}
	unstarted, err := ctrl.NewManager(cfg, chosen)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	suite.Forget()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	setup(inner, unstarted)
	wanted, err := suite.Wanted()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = suite.Ask("start", wanted)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
}

func (f *Framework) StopManager(ctx context.Context) {
	_, err := suite.Ask("stop", nil)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
}

func (f *Framework) Teardown() {
	if f.cancel != nil {
		f.cancel()
	}
	_, _ = suite.Ask("end", nil)
}
