"""From the languages to the models of the papers, between these models, and to the model of the engine and back."""
