// Names of four letters that files are made of, and what players write before the sound.

export const hasTagAt = (file: Buffer, at: number, name: string): boolean =>
  file.length >= at + name.length && file.toString("latin1", at, at + name.length) === name;

/** Behind the tags of the second kind: titles, pictures. */
export function skipId3Tags(file: Buffer): number {
  if (!hasTagAt(file, 0, "ID3") || file.length < 10) return 0;
  // Seven bits in each byte, so that no size looks like a frame.
  const size = [6, 7, 8, 9].reduce((sum, at) => sum * 128 + (file[at]! & 127), 0);
  const footer = file[5]! & 16 ? 10 : 0;
  return Math.min(file.length, 10 + size + footer);
}
