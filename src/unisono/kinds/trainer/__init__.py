"""`trainer.kubeflow.org/v1alpha1`: TrainJob and the runtimes it refers to.

    schema      the manifests of both generations, v2.0 to v2.1 and v2.2 onwards
    stock       the runtimes that come with the operator
    render      a TrainJob and its runtime -> pod templates and counts
    kinds       what the registry lists

A runtime is a template of a JobSet; a TrainJob fills it in.
"""
