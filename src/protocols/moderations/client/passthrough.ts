// Passthrough mode: forwards the backend's bytes and replaces the model name with the one that the
// client uses.
import type { Fault } from "../../../model/error.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import { asText } from "../../json-values.ts";
import { encodeFault } from "../../responses/server/fault.ts";
import { replaceModelName } from "../../sse/index.ts";
import { usageOf, parseResults } from "./response.ts";

export const createPassthrough = (
  sink: PassthroughSink,
  to: ResponseContext,
): PassthroughStream => ({
  isBetweenEvents: true,
  push(body) {
    const { answer } = parseResults(body);
    const id = asText(answer["id"]);
    if (id !== undefined) sink.reportStart(id);
    sink.reportUsage({ type: "usage", usage: usageOf(answer) });
    sink.reportContent();
    sink.reportFinish("stop");
    replaceModelName(body, to.model, (b) => sink.write(b));
  },
  end() {},
  writeFault(f: Fault) {
    sink.write(Buffer.from(JSON.stringify(encodeFault(f, to).body)));
  },
});
