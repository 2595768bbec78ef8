import { describe, it } from "vitest";
import { moderations } from "tollgate/protocols/moderations";
import { protocolChecks } from "tollgate/testing";

const recordings = new URL("../../fixtures/recordings/moderations/", import.meta.url);

describe("the rules of protocols", () => {
  for (const { name, run } of protocolChecks(moderations(), { recordings, trials: 20 }))
    it(name, run);
});
