import { describe, it } from "vitest";
import { completions, mistralFim } from "tollgate/protocols/completions";
import { ollamaCompletions } from "tollgate/protocols/ollama";
import { protocolChecks } from "tollgate/testing";

describe("the rules of protocols", () => {
  for (const wire of [completions(), mistralFim(), ollamaCompletions()]) {
    const recordings = new URL(`../../fixtures/recordings/${wire.id}/`, import.meta.url);
    for (const { name, run } of protocolChecks(wire, { recordings, trials: 20 })) it(name, run);
  }
});
