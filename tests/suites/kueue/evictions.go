package util

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Evictions that a spec has waited for already, by workload. This file is ours.
var waitedFor = map[types.UID]int32{}

// FinishEvictionOfWorkloadsInCQ waits for so many evictions more. Kueue's manager keeps the quota of
// an evicted Workload until the controller of its job gives it back, which a spec without jobs does
// itself; ours gives back at once what has no pods, so there is nothing else to do.
func FinishEvictionOfWorkloadsInCQ(ctx context.Context, k8sClient client.Client, cq *kueue.ClusterQueue, n int) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(func(g gomega.Gomega) {
		queues, workloads := &kueue.LocalQueueList{}, &kueue.WorkloadList{}
		g.Expect(k8sClient.List(ctx, queues)).To(gomega.Succeed())
		g.Expect(k8sClient.List(ctx, workloads)).To(gomega.Succeed())
		leads := map[types.NamespacedName]bool{}
		for _, queue := range queues.Items {
			key := types.NamespacedName{Namespace: queue.Namespace, Name: queue.Name}
			leads[key] = string(queue.Spec.ClusterQueue) == cq.Name
		}
		found := map[types.UID]int32{}
		more := 0
		for _, workload := range workloads.Items {
			key := types.NamespacedName{Namespace: workload.Namespace, Name: string(workload.Spec.QueueName)}
			if !leads[key] || workload.Status.SchedulingStats == nil {
				continue
			}
			for _, eviction := range workload.Status.SchedulingStats.Evictions {
				found[workload.UID] += eviction.Count
			}
			more += int(found[workload.UID] - waitedFor[workload.UID])
		}
		g.Expect(more).Should(gomega.Equal(n), "Not enough workloads evicted")
		for uid, count := range found {
			waitedFor[uid] = count
		}
	}, Timeout, Interval).Should(gomega.Succeed())
}
