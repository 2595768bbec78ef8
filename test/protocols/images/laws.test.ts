import { describe, it } from "vitest";
import { images } from "../../../src/protocols/images/index.ts";
import { protocolLaws } from "../../../src/testing/protocol-laws.ts";

const recordings = new URL("../../fixtures/recordings/images/", import.meta.url);

describe("the laws of protocols", () => {
  for (const { name, run } of protocolLaws(images(), { recordings, trials: 20 })) it(name, run);
});
