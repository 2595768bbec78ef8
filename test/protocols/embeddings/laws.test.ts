import { describe, it } from "vitest";
import type { Protocol } from "tollgate/plugin";
import { cohereEmbeddings } from "tollgate/protocols/cohere";
import { embeddings } from "tollgate/protocols/embeddings";
import { geminiEmbedding, geminiSingleEmbedding } from "tollgate/protocols/gemini";
import { ollamaEmbeddings } from "tollgate/protocols/ollama";
import { protocolChecks } from "tollgate/testing";

const WIRES: readonly Protocol<any>[] = [
  embeddings(),
  cohereEmbeddings(),
  geminiEmbedding(),
  geminiSingleEmbedding(),
  ollamaEmbeddings(),
];

describe("the rules of protocols", () => {
  for (const wire of WIRES) {
    const recordings = new URL(`../../fixtures/recordings/${wire.id}/`, import.meta.url);
    for (const { name, run } of protocolChecks(wire, { recordings, trials: 20 })) it(name, run);
  }
});
