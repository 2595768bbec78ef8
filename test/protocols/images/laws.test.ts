import { describe, it } from "vitest";
import { all } from "../../../plugins/providers/rows.ts";
import { images, xaiEdits } from "../../../src/protocols/images/index.ts";
import { protocolLaws } from "../../../src/testing/protocol-laws.ts";

const recordings = (wire: string) => new URL(`../../fixtures/recordings/${wire}/`, import.meta.url);
const xai = all.find(({ name }) => name === "xai")!.speaks["xai-edits"]!;

describe.each([images(), xaiEdits(xai)].map((wire) => [wire.id, wire] as const))(
  "the laws of protocols: %s",
  (id, wire) => {
    for (const { name, run } of protocolLaws(wire, { recordings: recordings(id), trials: 20 }))
      it(name, run);
  },
);
