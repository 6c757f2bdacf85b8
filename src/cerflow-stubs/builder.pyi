from cerflow.api.builder import *
