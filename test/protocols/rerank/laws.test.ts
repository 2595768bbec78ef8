import { describe, it } from "vitest";
import { rerank, voyageRerank } from "tollgate/protocols/rerank";
import { protocolChecks } from "tollgate/testing";

describe("the rules of protocols", () => {
  for (const wire of [rerank(), voyageRerank()]) {
    const recordings = new URL(`../../fixtures/recordings/${wire.id}/`, import.meta.url);
    for (const { name, run } of protocolChecks(wire, { recordings, trials: 20 })) it(name, run);
  }
});
