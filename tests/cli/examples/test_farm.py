import runpy


def test_the_ten_lines_print_the_three_matches(capsys):
    runpy.run_module("cerflow.examples.farm", run_name="__main__")
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "plot 0: 42.0 °C at 06:05, 18.0 % at 06:08",
        "plot 0: 45.0 °C at 06:01, 18.0 % at 06:08",
        "plot 0: 45.0 °C at 06:01, 20.0 % at 06:02",
    ]
