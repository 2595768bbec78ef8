// How many items a collector has refused of a batch that it took: `partialSuccess` of its answer, in either form.

export function rejectedOf(answer: Buffer, json: boolean): number {
  const said = json ? ofJson(answer) : ofProtobuf(answer);
  return Number.isSafeInteger(said) && said > 0 ? said : 0;
}

const NAMES = ["rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"];

function ofJson(answer: Buffer): number {
  try {
    const { partialSuccess } = JSON.parse(answer.toString()) as {
      partialSuccess?: { [name: string]: unknown };
    };
    return Number(NAMES.map((name) => partialSuccess?.[name]).find((said) => said !== undefined));
  } catch {
    return 0;
  }
}

const MESSAGE = 0x0a;
const COUNT = 0x08;

/** Field 1 of the answer is the message, and field 1 of that the count, for all three signals. */
function ofProtobuf(answer: Buffer): number {
  if (answer[0] !== MESSAGE) return 0;
  const [, at] = varint(answer, 1);
  return answer[at] === COUNT ? varint(answer, at + 1)[0] : 0;
}

/** A number, and where it ends. */
function varint(bytes: Buffer, from: number): [value: number, end: number] {
  let value = 0;
  for (let i = 0; i < 8; i++) {
    const byte = bytes[from + i] ?? 0;
    value += (byte & 0x7f) * 128 ** i;
    if (byte < 0x80) return [value, from + i + 1];
  }
  return [0, from];
}
