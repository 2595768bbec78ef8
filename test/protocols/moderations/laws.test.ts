import { describe, it } from "vitest";
import { moderations } from "tollgate/protocols/moderations";
import { protocolLaws } from "tollgate/testing";

const recordings = new URL("../../fixtures/recordings/moderations/", import.meta.url);

describe("the laws of protocols", () => {
  for (const { name, run } of protocolLaws(moderations(), { recordings, trials: 20 }))
    it(name, run);
});
