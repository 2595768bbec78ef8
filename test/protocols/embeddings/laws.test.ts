import { describe, it } from "vitest";
import type { Protocol } from "tollgate/plugin";
import { cohereEmbeddings } from "tollgate/protocols/cohere";
import { embeddings } from "tollgate/protocols/embeddings";
import { geminiEmbedding, geminiEmbeddingOne } from "tollgate/protocols/gemini";
import { ollamaEmbeddings } from "tollgate/protocols/ollama";
import { protocolLaws } from "tollgate/testing";

const WIRES: readonly Protocol<any>[] = [
  embeddings(),
  cohereEmbeddings(),
  geminiEmbedding(),
  geminiEmbeddingOne(),
  ollamaEmbeddings(),
];

describe("the laws of protocols", () => {
  for (const wire of WIRES) {
    const recordings = new URL(`../../fixtures/recordings/${wire.id}/`, import.meta.url);
    for (const { name, run } of protocolLaws(wire, { recordings, trials: 20 })) it(name, run);
  }
});
