import { describe, it } from "vitest";
import { ALL_ROWS } from "../../../plugins/providers/provider-rows.ts";
import { images, xaiImageEdits } from "../../../src/protocols/images/index.ts";
import { protocolChecks } from "../../../src/testing/protocol-laws.ts";

const recordings = (wire: string) => new URL(`../../fixtures/recordings/${wire}/`, import.meta.url);
const xai = ALL_ROWS.find(({ name }) => name === "xai")!.protocols["xai-edits"]!;

describe.each([images(), xaiImageEdits(xai)].map((wire) => [wire.id, wire] as const))(
  "the rules of protocols: %s",
  (id, wire) => {
    for (const { name, run } of protocolChecks(wire, { recordings: recordings(id), trials: 20 }))
      it(name, run);
  },
);
