from cerflow.cli.examples import *
