"""The Python builder: functions and operators that give the same trees as the parsers. Public as `cerflow.builder`."""
