"""contextengine behind a base URL: a proxy in front of whatever speaks OpenAI Chat Completions,
OpenAI Responses or Anthropic Messages, which shows the model what fits its budget."""
