// Forwards a non-streaming response in passthrough mode.
import { fail, type Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asList, asObject, parseObject, asText } from "../../json-values.ts";
import { sniffImage, type ImageHead } from "../../sniff-image.ts";
import { endOfValue, createWriteBatch, encodeKey, findValue } from "../../sse/index.ts";
import { encodeFault } from "../server/fault.ts";
import { parseTokenUsage, usageSeen } from "../usage.ts";

const MODEL = encodeKey("model");
const USAGE = encodeKey("usage");
const DATA = encodeKey("data");

export function createResponsePassthrough(
  sink: PassthroughSink,
  to: ResponseContext,
): PassthroughStream {
  return {
    isBetweenEvents: true,
    push(body) {
      const from = body.indexOf(123);
      if (!isOneValue(body, from)) notJson();
      const counts = from < 0 ? undefined : findValue(body, [USAGE], from);
      const usage = counts && parseObject(body.toString("utf8", counts.from, counts.to));
      const data = from < 0 ? undefined : findValue(body, [DATA], from);
      // Image data is megabytes in size. It is parsed only if the usage report does not contain
      // tokens.
      if (parseTokenUsage(usage) && data && body[data.from] === 91)
        sink.reportUsage(usageSeen(usage, []));
      else sink.reportUsage(usageReport(body, usage));
      sink.reportContent();
      sink.reportFinish("stop");
      const out = createWriteBatch((b) => sink.write(b));
      const name = findValue(body, [MODEL], from);
      if (name && body[name.from] === 34) {
        out.add(body.subarray(0, name.from));
        out.add(Buffer.from(JSON.stringify(to.model)));
        out.add(body.subarray(name.to));
      } else out.add(body);
      out.flush();
    },
    end() {},
    writeFault(f: Fault) {
      sink.write(Buffer.from(JSON.stringify(encodeFault(f, to).body)));
    },
  };
}

/** Whether the body contains one complete JSON value and nothing after it. */
function isOneValue(body: Buffer, from: number): boolean {
  if (from < 0) return false;
  const end = endOfValue(body, from);
  return end >= 0 && body.toString("latin1", end).trim() === "";
}

const notJson = (): never =>
  fail("upstream", "The provider's response is not a JSON object.", { code: "bad_answer" });

function usageReport(body: Buffer, usage: JsonObject | undefined): ReturnType<typeof usageSeen> {
  const answer = parseObject(body.toString("utf8"));
  if (!answer) return notJson();
  if (asObject(answer["error"]) && !answer["data"]) throwParsedError(answer);
  const pictures = asList(answer["data"]).flatMap((item) => imageHeadOf(asObject(item)) ?? []);
  if (pictures.length === 0)
    fail("upstream", "The provider returned no image.", { code: "no_image" });
  return usageSeen(usage, pictures);
}

/**
 * Returns the header of an image. For a URL, the header is unknown. Returns undefined if the item
 * contains no image, as in translated mode.
 */
export function imageHeadOf(item: JsonObject | undefined): [ImageHead | undefined] | undefined {
  const base64 = asText(item?.["b64_json"]);
  if (base64) return [sniffImage({ base64 })];
  return asText(item?.["url"]) ? [undefined] : undefined;
}
