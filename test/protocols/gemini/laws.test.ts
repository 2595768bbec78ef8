// The laws that hold for every protocol, over this one's recordings, written after the documented wire.
import { test } from "vitest";
import { protocolChecks } from "tollgate/testing";
import { gemini, geminiImage } from "tollgate/protocols/gemini";

const folder = (name: string) => new URL(`../../fixtures/recordings/${name}/`, import.meta.url);

for (const protocol of [gemini(), geminiImage()])
  for (const { name, run } of protocolChecks(protocol as never, {
    recordings: folder(protocol.id),
    trials: 20,
  }))
    test(name, run);
