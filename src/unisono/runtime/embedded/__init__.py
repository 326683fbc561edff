"""The embedded cluster of `unisono up`: API, controllers, runner, metrics and page."""
