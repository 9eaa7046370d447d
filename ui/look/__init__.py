"""How everything looks: colours, fonts, words, formulas, layouts; tools for painters, no widget."""
