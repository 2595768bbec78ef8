// The laws that hold for every protocol, over this one's recordings.
import { test } from "vitest";
import { protocolChecks } from "../../../src/testing/protocol-laws.ts";
import { protocol } from "./recorded.ts";

const recordings = new URL("../../fixtures/recordings/messages/", import.meta.url);

/** A call whose arguments were cut off can be streamed as far as it goes; a whole answer has objects only, and leaves it out. */
const EXCEPT =
  "messages: streaming and non-streaming responses have the same content: truncated-call";

for (const { name, run } of protocolChecks(protocol, { recordings, trials: 20 }))
  if (name !== EXCEPT) test(name, run);
