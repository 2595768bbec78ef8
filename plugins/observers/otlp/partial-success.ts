// Returns how many items of an accepted batch the collector rejected, from `partialSuccess` of a
// JSON or protobuf response.

export function rejectedCount(answer: Buffer, json: boolean): number {
  const said = json ? rejectedInJson(answer) : rejectedInProtobuf(answer);
  return Number.isSafeInteger(said) && said > 0 ? said : 0;
}

const REJECTED_FIELDS = ["rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"];

function rejectedInJson(answer: Buffer): number {
  try {
    const { partialSuccess } = JSON.parse(answer.toString()) as {
      partialSuccess?: { [name: string]: unknown };
    };
    return Number(
      REJECTED_FIELDS.map((name) => partialSuccess?.[name]).find((said) => said !== undefined),
    );
  } catch {
    return 0;
  }
}

const MESSAGE = 0x0a;
const COUNT = 0x08;

/**
 * For all three signals, field 1 of the response is the message, and field 1 of that message is the
 * count.
 */
function rejectedInProtobuf(answer: Buffer): number {
  if (answer[0] !== MESSAGE) return 0;
  const [, at] = readVarint(answer, 1);
  return answer[at] === COUNT ? readVarint(answer, at + 1)[0] : 0;
}

/** Returns a number and the offset of its end. */
function readVarint(bytes: Buffer, from: number): [value: number, end: number] {
  let value = 0;
  for (let i = 0; i < 8; i++) {
    const byte = bytes[from + i] ?? 0;
    value += (byte & 0x7f) * 128 ** i;
    if (byte < 0x80) return [value, from + i + 1];
  }
  return [0, from];
}
