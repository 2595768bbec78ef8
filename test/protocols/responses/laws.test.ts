import { describe, it } from "vitest";
import { responses } from "tollgate/protocols/responses";
import { protocolLaws } from "tollgate/testing";

const recordings = new URL("../../fixtures/recordings/responses/", import.meta.url);

describe("what holds for every protocol", () => {
  for (const { name, run } of protocolLaws(responses(), { recordings, trials: 20 })) it(name, run);
});
