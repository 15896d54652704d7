"""contextengine behind a base URL: a proxy in front of whatever speaks OpenAI Chat Completions,
OpenAI Responses, Anthropic Messages or Gemini's API, which shows the model what fits its budget."""
