import { expect, it } from "vitest";
import { numbersText, textsText } from "./array-text.ts";

it("C-26 lists become what PostgreSQL reads as the same list", () => {
  expect(numbersText([])).toBe("{}");
  expect(numbersText([1, null, 0.5, 1e21])).toBe("{1,NULL,0.5,1e+21}");
  expect(textsText([])).toBe("{}");
  expect(textsText(["", "a b,{}", null, "NULL"])).toBe('{"","a b,{}",NULL,"NULL"}');
  expect(textsText(['{"a":"\\n"}'])).toBe('{"{\\"a\\":\\"\\\\n\\"}"}');
});
