// MP4 is boxes in boxes. How long the film is stands in `mvhd`, and where its parts came one by one, in `mehd`.
import { isTag } from "./tags.ts";

/** Of one box. */
const MOST_BOXES = 10_000;

interface Box {
  readonly from: number;
  readonly to: number;
}

export function secondsOfMp4(file: Buffer): number | undefined {
  const moov = boxIn(file, { from: 0, to: file.length }, "moov");
  const mvhd = moov && boxIn(file, moov, "mvhd");
  if (!mvhd) return undefined;
  const wide = file[mvhd.from] === 1;
  const at = mvhd.from + (wide ? 20 : 12);
  if (at + 12 > mvhd.to) return undefined;
  const scale = file.readUInt32BE(at);
  const said = wide ? Number(file.readBigUInt64BE(at + 4)) : file.readUInt32BE(at + 4);
  const unknown = said === 0 || said >= (wide ? 2 ** 63 : 0xffff_ffff);
  const length = unknown ? fragments(file, moov) : said;
  return scale === 0 || length === undefined ? undefined : length / scale;
}

function fragments(file: Buffer, moov: Box): number | undefined {
  const mvex = boxIn(file, moov, "mvex");
  const mehd = mvex && boxIn(file, mvex, "mehd");
  if (!mehd || mehd.from + 12 > mehd.to) return undefined;
  return file[mehd.from] === 1
    ? Number(file.readBigUInt64BE(mehd.from + 4))
    : file.readUInt32BE(mehd.from + 4);
}

function boxIn(file: Buffer, { from, to }: Box, name: string): Box | undefined {
  for (let at = from, n = 0; at + 16 <= to && n < MOST_BOXES; n++) {
    const short = file.readUInt32BE(at);
    const head = short === 1 ? 16 : 8;
    const size = short === 0 ? to - at : short === 1 ? Number(file.readBigUInt64BE(at + 8)) : short;
    if (size < head) return undefined;
    if (isTag(file, at + 4, name)) return { from: at + head, to: Math.min(to, at + size) };
    at += size;
  }
  return undefined;
}
