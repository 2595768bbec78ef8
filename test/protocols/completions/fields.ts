// Fields of a text completion request: rows of docs/reference/translation/other-operations.md.
import type { Body, JsonObject } from "tollgate/plugin";
import { completions, mistralFim } from "tollgate/protocols/completions";
import { ollamaCompletions } from "tollgate/protocols/ollama";
import { table as verdicts, type Row, type Wires } from "../tables/verdicts.ts";

const WIRES: Wires = {
  "compatible hosts": completions(),
  Mistral: mistralFim(),
  Ollama: ollamaCompletions(),
};

const LEAST = { model: "m", prompt: "Once upon", max_tokens: 16 };

const ROWS: readonly Row<object>[] = [
  ["suffix", { suffix: "the end." }],
  ["several prompts", { prompt: ["one", "two"] }],
  ["token IDs", { prompt: [1, 2, 3] }],
  ["max_tokens", { max_tokens: 32 }],
  ["stop", { stop: ["\n"] }],
  ["temperature", { temperature: 0.5 }],
  ["top_p", { top_p: 0.5 }],
  ["seed", { seed: 7 }],
  ["n > 1", { n: 2 }],
  ["best_of", { best_of: 2 }],
  ["echo", { echo: true }],
  ["logprobs", { logprobs: 2 }],
  ["logit_bias", { logit_bias: { "50256": -100 } }],
  ["presence_penalty", { presence_penalty: 0.5 }],
  ["frequency_penalty", { frequency_penalty: 0.5 }],
  ["user", { user: "u" }],
];

export function table(): string {
  const { server } = completions();
  const read = (more: object) =>
    server!.decodeRequest({ ...LEAST, ...more } as JsonObject as Body, "generate");
  return verdicts(
    WIRES,
    ROWS.map(([name, more, plain = {}]) => ({ name, request: read(more), plain: read(plain) })),
  );
}
