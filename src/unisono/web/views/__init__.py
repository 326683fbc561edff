"""The pages as data: functions of the dashboard and of what a person may see."""
