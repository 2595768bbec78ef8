import { describe, it } from "vitest";
import { responses } from "tollgate/protocols/responses";
import { protocolChecks } from "tollgate/testing";

const recordings = new URL("../../fixtures/recordings/responses/", import.meta.url);

describe("the rules of protocols", () => {
  for (const { name, run } of protocolChecks(responses(), { recordings, trials: 20 }))
    it(name, run);
});
