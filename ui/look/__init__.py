"""How anything looks: colours, fonts, words, formulas, layouts; painters' tools, no widget."""
