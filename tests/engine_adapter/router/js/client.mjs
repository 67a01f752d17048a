// Use the stock OpenAI SDK against a server, and print what it saw as JSON.
// Usage: node client.mjs BASE_URL
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "sk-client", maxRetries: 0 });
const messages = [{ role: "user", content: "Where?" }];
const found = {};

const whole = await client.chat.completions.create({ model: "whole", messages });
found.whole = [whole.choices[0].message.content, whole.usage.completion_tokens];

found.streamed = [];
for await (const chunk of await client.chat.completions.create({ model: "streamed", messages, stream: true })) {
  found.streamed.push([chunk.choices[0]?.delta?.content ?? null, chunk.usage ?? null]);
}

const counted = await client.chat.completions.create({
  model: "streamed",
  messages,
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of counted) {
  found.usage = chunk.usage?.completion_tokens ?? null;
}

const tools = [{ type: "function", function: { name: "where", parameters: { type: "object" } } }];
const runner = client.chat.completions.stream({ model: "tools", messages, tools });
found.tools = (await runner.finalChatCompletion()).choices[0].message.tool_calls[0].function;

for (const model of ["missing", "limited"]) {
  try {
    await client.chat.completions.create({ model, messages });
  } catch (error) {
    found[model] = [error.constructor.name, error.status, error.message];
  }
}
found.models = (await client.models.list()).data.map((model) => model.id);
console.log(JSON.stringify(found));
