// Ask a model server and send the span with the JavaScript SDK.
// Usage: node client.mjs proto|json SERVER COLLECTOR
import { SpanKind } from "@opentelemetry/api";
import { OTLPTraceExporter as JsonExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter as ProtoExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

const [encoding, server, collector] = process.argv.slice(2);
const Exporter = encoding === "json" ? JsonExporter : ProtoExporter;
const provider = new NodeTracerProvider({
  spanProcessors: [new BatchSpanProcessor(new Exporter({ url: `${collector}/v1/traces` }))],
});
const tracer = provider.getTracer("desk");
const messages = [{ role: "user", content: "capital of France?" }];

provider.register();
await tracer.startActiveSpan("agent", async (agent) => {
  const span = tracer.startSpan("chat tiny", { kind: SpanKind.CLIENT });
  const response = await fetch(`${server}/v1/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ model: "tiny", messages }),
  });
  const answer = await response.json();
  const [choice] = answer.choices;
  const parts = [{ type: "text", content: choice.message.content }];
  span.setAttributes({
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "tiny",
    "gen_ai.request.temperature": 0.5,
    "gen_ai.response.model": answer.model,
    "gen_ai.response.finish_reasons": [choice.finish_reason],
    "gen_ai.usage.input_tokens": answer.usage.prompt_tokens,
    "gen_ai.usage.output_tokens": answer.usage.completion_tokens,
    "gen_ai.output.messages": JSON.stringify([{ role: "assistant", parts }]),
    "draftgate.rollout": "k4",
    "draftgate.arm": "baseline",
    "draftgate.prompt.id": "plain",
    "draftgate.repeat": 0,
    "draftgate.fallback": false,
    "spec_decode.acceptance_histogram": [1, 2],
    "spec_decode.num_steps": 3,
    "spec_decode.num_draft_tokens": 3,
    "spec_decode.num_accepted_tokens": 2,
  });
  span.end();
  agent.end();
});
await provider.shutdown();
