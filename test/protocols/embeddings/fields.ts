// Fields of an embedding request: rows of docs/reference/translation/other-operations.md.
import type { Body, JsonObject } from "tollgate/plugin";
import { cohereEmbeddings } from "tollgate/protocols/cohere";
import { embeddings } from "tollgate/protocols/embeddings";
import { geminiEmbedding } from "tollgate/protocols/gemini";
import { ollamaEmbeddings } from "tollgate/protocols/ollama";
import { ALL_ROWS } from "../../../plugins/providers/provider-rows.ts";
import { table as verdicts, type Row, type Wires } from "../tables/verdicts.ts";

const row = (name: string) =>
  embeddings(ALL_ROWS.find((one) => one.name === name)!.protocols.embeddings ?? {});

const WIRES: Wires = {
  "compatible hosts": embeddings(),
  OpenAI: embeddings({ task: false }),
  Mistral: row("mistral"),
  Voyage: row("voyage"),
  Gemini: geminiEmbedding(),
  Cohere: cohereEmbeddings(),
  Ollama: ollamaEmbeddings(),
};

const LEAST = { model: "m", input: ["a text"] };

const ROWS: readonly Row<object>[] = [
  ["one input", { input: "a text that stands alone" }],
  ["several inputs", { input: ["one", "two"] }],
  ["token IDs", { input: [[1, 2], [3]] }],
  ["dimensions", { dimensions: 256 }],
  ["output_dimension", { output_dimension: 256 }],
  ["output_dtype: int8", { output_dtype: "int8" }],
  ["input_type: query", { input_type: "search_query" }],
  ["input_type: clustering", { input_type: "clustering" }],
  ["input_type: code", { input_type: "CODE_RETRIEVAL_QUERY" }],
  ["no input_type", {}, { input_type: "document" }],
  ["truncate: NONE", { truncate: "NONE" }],
  ["truncate: START", { truncate: "START" }],
  ["user", { user: "u" }],
];

export function table(): string {
  const { server } = embeddings();
  const read = (more: object) =>
    server!.decodeRequest({ ...LEAST, ...more } as JsonObject as Body, "generate");
  return verdicts(
    WIRES,
    ROWS.map(([name, more, plain = {}]) => ({ name, request: read(more), plain: read(plain) })),
  );
}
