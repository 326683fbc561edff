"""The pages as data: functions of the board and of what a person may see."""
