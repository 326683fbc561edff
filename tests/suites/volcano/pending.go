// What stands in for Volcano's helper that waits for pods in phase Pending. A job that waits for
// nodes has no pods here, so those that are missing count as well; that has to stay so for a while.

package util

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	batchv1alpha1 "volcano.sh/apis/pkg/apis/batch/v1alpha1"
)

const looksAlike = 20 // in a row, 100 ms apart

func waitsForPending(phases []v1.PodPhase) bool {
	return slices.Contains(phases, v1.PodPending)
}

func waitTasksPendingOrMissing(ctx *TestContext, job *batchv1alpha1.Job, wanted int) error {
	found, alike := 0, 0
	err := wait.Poll(100*time.Millisecond, FiveMinute, func() (bool, error) {
		now, err := ctx.Vcclient.BatchV1alpha1().Jobs(job.Namespace).Get(
			context.TODO(), job.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		pods, err := ctx.Kubeclient.CoreV1().Pods(job.Namespace).List(
			context.TODO(), metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		found = 0
		for _, task := range now.Spec.Tasks {
			found += int(task.Replicas)
		}
		pending := 0
		for _, pod := range pods.Items {
			if !metav1.IsControlledBy(&pod, job) {
				continue
			}
			if pod.Status.Phase == v1.PodPending {
				pending++
			} else {
				found--
			}
		}
		if pending >= wanted {
			return true, nil
		}
		if found < wanted {
			alike = 0
			return false, nil
		}
		alike++
		return alike >= looksAlike, nil
	})
	if err != nil {
		return fmt.Errorf("%d pods of job %s wait, wanted %d: %w", found, job.Name, wanted, err)
	}
	return nil
}
