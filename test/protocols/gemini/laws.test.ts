// The rules for every protocol, with this one's recordings, written from the documentation.
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
