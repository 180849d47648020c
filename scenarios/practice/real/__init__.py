"""A real language model behind the practice endpoint.

`weights.py` finds the file, `engine.py` runs it in this process, and `chat_model.py` answers chats
with it. A small model makes no native tool calls, so `call_schema.py` forces a JSON array,
`["get_stock", "sku-4603"]`, and `reply.py` turns it into a call. `prompt.py` writes the
conversation in the same form.
"""
