// Shared parts of the messages tests: recordings written from the documentation, and a codec
// without a host.
import {
  isStreamRecording,
  readRecordings,
  type Recording,
} from "../../../src/testing/recording.ts";
import { messages } from "../../../src/protocols/messages/index.ts";
import type { ClientHalf, ServerHalf } from "../../../src/plugin/protocol.ts";

export const protocol = messages();
export const client = protocol.client as ClientHalf<"chat">;
export const server = protocol.server as ServerHalf<"chat">;

const all = readRecordings(new URL("../../fixtures/recordings/messages/", import.meta.url));
export const streams: readonly Recording[] = all.filter(isStreamRecording);
export const wholes: readonly Recording[] = all.filter((r) => !isStreamRecording(r));
