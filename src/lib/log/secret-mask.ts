// Masks secrets in log lines, errors, and terminal output: registered values in every encoding, and
// any text that looks like a key. This masking is the second line of defense. The first is that
// code does not write secrets.

const MASKED = "[secret]";

/** Minimum length, in characters, of a masked value. Shorter values would mask ordinary words. */
const MIN_SECRET_LENGTH = 6;

const notAfterWord = (pattern: string) => `(?<![0-9A-Za-z])${pattern}`;

/**
 * Shapes of keys: Tollgate keys, client secrets, bearer and basic tokens (with a digit or at least
 * 20 characters, unlike prose), and `sk-` keys. The lookbehinds have a maximum length. Otherwise, a long run of
 * spaces from an upstream would take quadratic time.
 */
const KEY_PATTERNS = [
  notAfterWord(String.raw`tg_[0-9A-Za-z_-]{12,}`),
  notAfterWord(String.raw`ek_[0-9A-Za-z_-]{40,}`),
  String.raw`(?<=\b[Bb]earer\s{1,8})(?=\S{20}|[^\s"]*\d)[\w.~+/=-]{6,}`,
  String.raw`(?<=\b[Bb]asic\s{1,8})(?=\S{20}|[^\s"]*\d)[\w+/=-]{6,}`,
  notAfterWord(String.raw`sk-[0-9A-Za-z_-]{8,}`),
];

/**
 * Returns the Base64 text that any string containing the value has, at each of the three byte
 * alignments.
 */
function base64Cores(value: string): string[] {
  return [0, 1, 2].map((shift) => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(value)]);
    return bytes
      .toString("base64")
      .slice(Math.ceil((shift * 8) / 6), Math.floor((bytes.length * 8) / 6));
  });
}

const escapeRegExp = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);

const jsonEscape = (value: string) => JSON.stringify(value).slice(1, -1);

/**
 * Returns the texts in which a secret can be quoted: itself, and its encodings in JSON, URLs, and
 * Base64. Empty if it is too short, because its encodings would match ordinary words.
 */
export function encodingsOf(value: string): readonly string[] {
  if (value.length < MIN_SECRET_LENGTH) return [];
  const whole = Buffer.from(value).toString("base64");
  const base64 = [whole, ...base64Cores(value)];
  const uri = encodeURIComponent(value.toWellFormed());
  return [
    value,
    jsonEscape(value),
    // JSON within JSON strings, up to two levels, as it appears in a line.
    jsonEscape(jsonEscape(value)),
    jsonEscape(jsonEscape(jsonEscape(value))),
    uri,
    uri.replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase()),
    uri.replaceAll("%20", "+"),
    encodeURI(value.toWellFormed()),
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")),
    ...base64.map(encodeURIComponent),
  ];
}

export class SecretMask {
  readonly #spellings = new Set<string>();
  #pattern: RegExp | undefined;
  /**
   * Length of the shortest match, in characters. Shorter texts are not searched. The shortest key
   * shape has 11.
   */
  #least = 11;

  /**
   * Registers values to mask. For a multi-line value, such as a private key, each line is also
   * masked separately.
   */
  add(values: Iterable<string>): void {
    for (const value of values) {
      const parts = value.includes("\n")
        ? [value, ...value.split(/\r?\n/).filter((line) => line.length >= 16)]
        : [value];
      for (const spelling of parts.flatMap(encodingsOf))
        if (!MASKED.includes(spelling)) {
          this.#spellings.add(spelling);
          this.#least = Math.min(this.#least, spelling.length);
        }
    }
    this.#pattern = undefined;
  }

  /**
   * Returns the text with every secret replaced. Returns the same string if it contains no secret.
   */
  maskText(text: string): string {
    return text.length < this.#least ? text : text.replace(this.#compiled(), MASKED);
  }

  /** Masks a serialized line value by value, so that the result is valid JSON. */
  maskJsonLine(line: string): string {
    if (line.search(this.#compiled()) < 0) return line;
    return JSON.stringify(this.maskValue(JSON.parse(line)));
  }

  /**
   * Returns a parsed JSON value with every secret replaced, regardless of how the text escaped it.
   */
  maskValue(value: unknown): unknown {
    if (typeof value === "string") return this.maskText(value);
    // A secret that consists of digits can be sent as a number.
    if (typeof value === "number") return this.maskText(`${value}`) === `${value}` ? value : MASKED;
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((each) => this.maskValue(each));
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [this.maskText(key), this.maskValue(each)]),
    );
  }

  #compiled(): RegExp {
    return (this.#pattern ??= new RegExp(
      [
        // The longest values are first, so that a value that contains another value is masked
        // completely.
        ...[...this.#spellings].sort((a, b) => b.length - a.length).map(escapeRegExp),
        ...KEY_PATTERNS,
      ].join("|"),
      "g",
    ));
  }
}
