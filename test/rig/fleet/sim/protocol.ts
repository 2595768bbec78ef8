// PostgreSQL's messages, as far as the simulated network must know their ends and their queries.

export interface Message {
  readonly type: string;
  readonly body: Buffer;
  /** Including type and length. */
  readonly whole: Buffer;
}

/** Complete messages, each with a type. */
export function* messagesIn(bytes: Buffer): Generator<Message, number> {
  let at = 0;
  while (at + 5 <= bytes.length) {
    const end = at + 1 + bytes.readInt32BE(at + 1);
    if (end > bytes.length) break;
    yield {
      type: String.fromCharCode(bytes[at]!),
      body: bytes.subarray(at + 5, end),
      whole: bytes.subarray(at, end),
    };
    at = end;
  }
  return at;
}

/** A client's query with its values. */
export interface Statement {
  readonly text: string;
  readonly values?: readonly (string | number | Buffer | null)[];
}

/** A group of messages with one response: up to a Sync, or one simple query. */
export interface Asked extends Statement {
  readonly bytes: Buffer;
}

export function askedBy(messages: readonly Message[]): Asked {
  let [text, values] = ["", [] as (string | Buffer | null)[]];
  for (const { type, body } of messages) {
    if (type === "Q") text = body.toString("utf8", 0, body.length - 1);
    if (type === "P") {
      const start = body.indexOf(0) + 1;
      text = body.toString("utf8", start, body.indexOf(0, start));
    }
    if (type === "B") values = bound(body);
  }
  return { text, values, bytes: Buffer.concat(messages.map(({ whole }) => whole)) };
}

/** Text of the statement in a group of messages that parses one without a name. */
export function parsedText([first]: readonly Message[]): string | undefined {
  if (first?.type !== "P" || first.body[0] !== 0) return undefined;
  return first.body.toString("utf8", 1, first.body.indexOf(0, 1));
}

/** The same group with a statement that was prepared, in place of the one that it parses. */
export const withPrepared = (messages: readonly Message[], name: string): Buffer =>
  Buffer.concat(
    messages.flatMap(({ type, body, whole }) => {
      if (type === "P") return [];
      if (type !== "B") return [whole];
      const portal = body.indexOf(0) + 1;
      const rest = body.subarray(body.indexOf(0, portal) + 1);
      return [encoded("B", Buffer.concat([body.subarray(0, portal), text(name), rest]))];
    }),
  );

function bound(body: Buffer): (string | Buffer | null)[] {
  let at = body.indexOf(0) + 1;
  at = body.indexOf(0, at) + 1;
  const formats = Array.from({ length: body.readInt16BE(at) }, (_, i) =>
    body.readInt16BE(at + 2 + 2 * i),
  );
  at += 2 + 2 * formats.length;
  const many = body.readInt16BE(at);
  at += 2;
  return Array.from({ length: many }, (_, i) => {
    const length = body.readInt32BE(at);
    const value = length < 0 ? null : body.subarray(at + 4, at + 4 + length);
    at += 4 + Math.max(0, length);
    const binary = (formats.length === 1 ? formats[0] : formats[i]) === 1;
    return value === null ? null : binary ? value : value.toString("utf8");
  });
}

const encoded = (type: string, body: Buffer): Buffer => {
  const head = Buffer.alloc(5);
  head.write(type, 0, "latin1");
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};

const text = (of: string): Buffer => Buffer.from(`${of}\0`);

export const simple = (query: string): Buffer => encoded("Q", text(query));

/** A statement without values, sent in the driver's form for one with values. */
export const extended = (query: string): Buffer =>
  Buffer.concat([
    encoded("P", Buffer.concat([text(""), text(query), Buffer.alloc(2)])),
    encoded("B", Buffer.concat([text(""), text(""), Buffer.alloc(6)])),
    encoded("D", Buffer.concat([Buffer.from("P"), text("")])),
    encoded("E", Buffer.concat([text(""), Buffer.alloc(4)])),
    encoded("S", Buffer.alloc(0)),
  ]);

/** Prepares a statement. */
export const prepare = (name: string, query: string): Buffer =>
  Buffer.concat([
    encoded("P", Buffer.concat([text(name), text(query), Buffer.alloc(2)])),
    encoded("S", Buffer.alloc(0)),
  ]);

/** The response to a statement that is parsed. */
export const PARSED = encoded("1", Buffer.alloc(0));

/** A server's response to a new connection. */
export const WELCOME = Buffer.concat([
  encoded("R", Buffer.from([0, 0, 0, 0])),
  encoded("S", Buffer.from("client_encoding\0UTF8\0")),
  encoded("K", Buffer.alloc(8)),
  encoded("Z", Buffer.from("I")),
]);

/** The response to a query that fails outside a transaction. */
export const refusal = (code: string): Buffer =>
  Buffer.concat([
    encoded("E", Buffer.from(`SERROR\0VERROR\0C${code}\0Msimulated\0\0`)),
    encoded("Z", Buffer.from("I")),
  ]);

/** The server ends the connection, with this code. */
export const fatal = (code: string): Buffer =>
  encoded("E", Buffer.from(`SFATAL\0VFATAL\0C${code}\0Mthe connection is ended\0\0`));
