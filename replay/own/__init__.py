"""Context code of your own as a policy: a Python function, a framework's object, or a program in any language."""
