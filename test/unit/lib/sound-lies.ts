// Audio files whose headers state less than they contain: a generator of false headers for each
// format. The frames are unchanged, so a decoder plays all of them.

export interface Lie {
  readonly what: string;
  readonly file: Buffer;
  /** Number of repetitions of the audio. */
  readonly times: number;
}

type Liar = (file: Buffer) => readonly Lie[];

export const lies = (format: string, file: Buffer): readonly Lie[] => [
  ...LIARS[format]!(file),
  ...ANY(file),
];

const copied = (file: Buffer, edit: (copy: Buffer) => void): Buffer => {
  const copy = Buffer.from(file);
  edit(copy);
  return copy;
};
const lie = (what: string, file: Buffer, times = 1): Lie => ({ what, file, times });

/** Every position of a name. */
function places(file: Buffer, name: string | Buffer): number[] {
  const found: number[] = [];
  for (let at = file.indexOf(name); at >= 0; at = file.indexOf(name, at + 1)) found.push(at);
  return found;
}

/**
 * Two of these files in sequence are a stream that some decoders play to its end. They skip bytes
 * before and after.
 */
const ANY: Liar = (file) => [
  lie("junk behind it", Buffer.concat([file, Buffer.alloc(9_000, 65)])),
  lie("junk before it", Buffer.concat([Buffer.alloc(9_000, 65), file])),
];

const wav: Liar = (file) => {
  const fmt = file.indexOf("fmt ");
  const data = file.indexOf("data");
  const head = file.subarray(0, data);
  const sound = file.subarray(data + 8);
  const chunk = (name: string, bytes: Buffer) => {
    const size = Buffer.alloc(4);
    size.writeUInt32LE(bytes.length);
    return Buffer.concat([Buffer.from(name), size, bytes]);
  };
  const cut = Math.floor(sound.length / 8) & ~7;
  return [
    lie(
      "two data chunks",
      Buffer.concat([
        head,
        chunk("data", sound.subarray(0, cut)),
        chunk("data", sound.subarray(cut)),
      ]),
    ),
    lie(
      "a short data chunk",
      copied(file, (copy) => copy.writeUInt32LE(cut, data + 4)),
    ),
    lie(
      "a codec of another kind",
      copied(file, (copy) => copy.writeUInt16LE(0x55, fmt + 8)),
    ),
    lie(
      "more channels",
      copied(file, (copy) => copy.writeUInt16LE(31, fmt + 10)),
    ),
    lie(
      "a higher rate",
      copied(file, (copy) => copy.writeUInt32LE(400_000_000, fmt + 12)),
    ),
    lie(
      "more bytes per second",
      copied(file, (copy) => copy.writeUInt32LE(1e9, fmt + 16)),
    ),
    lie(
      "wider samples",
      copied(file, (copy) => copy.writeUInt16LE(240, fmt + 22)),
    ),
    lie(
      "a second format",
      Buffer.concat([
        file.subarray(0, 12),
        chunk(
          "fmt ",
          copied(file.subarray(fmt + 8, fmt + 24), (copy) => copy.fill(0xff, 4, 8)),
        ),
        file.subarray(12),
      ]),
    ),
  ];
};

const flac: Liar = (file) => {
  const at = file.indexOf("fLaC") + 8;
  return [0, 1, 800, 8_000].map((samples) =>
    lie(
      `${samples} samples`,
      copied(file, (copy) => {
        copy[at + 13] = copy[at + 13]! & 0xf0;
        copy.writeUInt32BE(samples, at + 14);
      }),
    ),
  );
};

const mp3: Liar = (file) => {
  const half = Math.floor(file.length / 2);
  const junk = Buffer.alloc(70_000, 0x41);
  return [
    lie("behind junk", Buffer.concat([junk, file])),
    lie("with junk inside", Buffer.concat([file.subarray(0, 2_000), junk, file.subarray(2_000)])),
    lie("behind another one", Buffer.concat([file, file]), 2),
    lie("half, junk, half", Buffer.concat([file.subarray(0, half), junk, file.subarray(half)])),
  ];
};

const ogg: Liar = (file) => {
  const pages = places(file, "OggS");
  const granule = (samples: bigint, of: readonly number[]) =>
    copied(file, (copy) => {
      for (const at of of)
        if (copy.readBigInt64LE(at + 6) > 0n) copy.writeBigInt64LE(samples, at + 6);
    });
  return [
    lie("an early last page", granule(9_600n, pages.slice(-1))),
    lie("early pages", granule(9_600n, pages)),
    lie("pages without a time", granule(-1n, pages)),
    lie("chained", Buffer.concat([file, file]), 2),
    lie(
      "two streams",
      Buffer.concat([
        file,
        copied(file, (copy) => {
          for (const at of places(copy, "OggS")) copy.writeUInt32LE(7, at + 14);
        }),
      ]),
      2,
    ),
    lie(
      "sound that is skipped",
      copied(file, (copy) => {
        const at = copy.indexOf("OpusHead");
        if (at >= 0) copy.writeUInt16LE(0xffff, at + 10);
      }),
    ),
  ];
};

const mp4: Liar = (file) => {
  const stated = (names: readonly string[], units: number) =>
    copied(file, (copy) => {
      for (const name of names)
        for (const at of places(copy, name)) {
          const wide = copy[at + 4] === 1;
          if (name === "mehd") copy.writeUInt32BE(units, at + 8);
          else if (name === "tkhd") copy.writeUInt32BE(units, at + (wide ? 36 : 24));
          else copy.writeUInt32BE(units, at + (wide ? 28 : 20));
        }
    });
  const deltas = copied(stated(["mvhd", "mdhd", "tkhd", "mehd"], 90), (copy) => {
    for (const at of places(copy, "stts"))
      if (copy.readUInt32BE(at + 8) > 0) copy.writeUInt32BE(3, at + 16);
  });
  const scales = copied(file, (copy) => {
    for (const name of ["mvhd", "mdhd"])
      for (const at of places(copy, name)) copy.writeUInt32BE(0x0fff_ffff, at + 16);
  });
  return [
    lie("a short film", stated(["mvhd"], 90)),
    lie("a short film and track", stated(["mvhd", "mdhd", "tkhd", "mehd"], 90)),
    lie("short everywhere", deltas),
    lie("faster clocks", scales),
    lie(
      "a higher rate for players",
      copied(scales, (copy) => {
        for (const at of places(copy, "mp4a"))
          if (at + 28 < copy.length) copy.writeUInt16BE(65_000, at + 28);
      }),
    ),
  ];
};

const webm: Liar = (file) => {
  const duration = file.indexOf(Buffer.from([0x44, 0x89, 0x88]));
  const scale = file.indexOf(Buffer.from([0x2a, 0xd7, 0xb1]));
  const clusters = places(file, Buffer.from([0x1f, 0x43, 0xb6, 0x75]));
  return [
    ...(duration > 0
      ? [
          lie(
            "a short duration",
            copied(file, (copy) => copy.writeDoubleBE(50, duration + 3)),
          ),
        ]
      : []),
    ...(scale > 0
      ? [
          lie(
            "a fine scale",
            copied(file, (copy) => copy.fill(0, scale + 4, scale + 6)),
          ),
        ]
      : []),
    lie(
      "a last cluster without pieces",
      Buffer.concat([file, Buffer.from([0x1f, 0x43, 0xb6, 0x75, 0x83, 0xe7, 0x81, 0x01])]),
    ),
    lie(
      "clusters at the beginning",
      copied(file, (copy) => {
        for (const at of clusters) {
          const time = copy.indexOf(0xe7, at);
          if (time > 0 && time < at + 20) copy.fill(0, time + 2, time + 2 + (copy[time + 1]! & 15));
        }
      }),
    ),
    lie("twice", Buffer.concat([file, file]), 2),
  ];
};

const LIARS: { readonly [format: string]: Liar } = {
  wav,
  flac,
  mp3,
  ogg,
  opus: ogg,
  m4a: mp4,
  mp4,
  webm,
};
