// The rules for every protocol, with this one's recordings.
import { test } from "vitest";
import { protocolChecks } from "../../../src/testing/protocol-laws.ts";
import { protocol } from "./recorded.ts";

const recordings = new URL("../../fixtures/recordings/messages/", import.meta.url);

/**
 * A call with truncated arguments can be streamed partially. A non-streaming response only has
 * objects, and omits it.
 */
const EXCEPT =
  "messages: streaming and non-streaming responses have the same content: truncated-call";

for (const { name, run } of protocolChecks(protocol, { recordings, trials: 20 }))
  if (name !== EXCEPT) test(name, run);
