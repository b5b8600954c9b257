//! Names of classes of Unicode that Go knows.

/// Names of general categories.
const CATEGORIES: &[&str] = &[
    "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn",
    "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm",
    "So", "Z", "Zl", "Zp", "Zs",
];

/// Other names of general categories, in the form of [`canonical`].
const ALIASES: &[(&str, &str)] = &[
    ("Casedletter", "LC"),
    ("Closepunctuation", "Pe"),
    ("Cntrl", "Cc"),
    ("Combiningmark", "M"),
    ("Connectorpunctuation", "Pc"),
    ("Control", "Cc"),
    ("Currencysymbol", "Sc"),
    ("Dashpunctuation", "Pd"),
    ("Decimalnumber", "Nd"),
    ("Digit", "Nd"),
    ("Enclosingmark", "Me"),
    ("Finalpunctuation", "Pf"),
    ("Format", "Cf"),
    ("Initialpunctuation", "Pi"),
    ("Letter", "L"),
    ("Letternumber", "Nl"),
    ("Lineseparator", "Zl"),
    ("Lowercaseletter", "Ll"),
    ("Mark", "M"),
    ("Mathsymbol", "Sm"),
    ("Modifierletter", "Lm"),
    ("Modifiersymbol", "Sk"),
    ("Nonspacingmark", "Mn"),
    ("Number", "N"),
    ("Openpunctuation", "Ps"),
    ("Other", "C"),
    ("Otherletter", "Lo"),
    ("Othernumber", "No"),
    ("Otherpunctuation", "Po"),
    ("Othersymbol", "So"),
    ("Paragraphseparator", "Zp"),
    ("Privateuse", "Co"),
    ("Punct", "P"),
    ("Punctuation", "P"),
    ("Separator", "Z"),
    ("Spaceseparator", "Zs"),
    ("Spacingmark", "Mc"),
    ("Surrogate", "Cs"),
    ("Symbol", "S"),
    ("Titlecaseletter", "Lt"),
    ("Unassigned", "Cn"),
    ("Uppercaseletter", "Lu"),
];

/// Names of scripts. Names of several words are left out: Go 1.26 refuses them, because Go removes
/// the underscore before the look-up of a name.
const SCRIPTS: &[&str] = &[
    "Adlam",
    "Ahom",
    "Arabic",
    "Armenian",
    "Avestan",
    "Balinese",
    "Bamum",
    "Batak",
    "Bengali",
    "Bhaiksuki",
    "Bopomofo",
    "Brahmi",
    "Braille",
    "Buginese",
    "Buhid",
    "Carian",
    "Chakma",
    "Cham",
    "Cherokee",
    "Chorasmian",
    "Common",
    "Coptic",
    "Cuneiform",
    "Cypriot",
    "Cyrillic",
    "Deseret",
    "Devanagari",
    "Dogra",
    "Duployan",
    "Elbasan",
    "Elymaic",
    "Ethiopic",
    "Georgian",
    "Glagolitic",
    "Gothic",
    "Grantha",
    "Greek",
    "Gujarati",
    "Gurmukhi",
    "Han",
    "Hangul",
    "Hanunoo",
    "Hatran",
    "Hebrew",
    "Hiragana",
    "Inherited",
    "Javanese",
    "Kaithi",
    "Kannada",
    "Katakana",
    "Kawi",
    "Kharoshthi",
    "Khmer",
    "Khojki",
    "Khudawadi",
    "Lao",
    "Latin",
    "Lepcha",
    "Limbu",
    "Lisu",
    "Lycian",
    "Lydian",
    "Mahajani",
    "Makasar",
    "Malayalam",
    "Mandaic",
    "Manichaean",
    "Marchen",
    "Medefaidrin",
    "Miao",
    "Modi",
    "Mongolian",
    "Mro",
    "Multani",
    "Myanmar",
    "Nabataean",
    "Nandinagari",
    "Newa",
    "Nko",
    "Nushu",
    "Ogham",
    "Oriya",
    "Osage",
    "Osmanya",
    "Palmyrene",
    "Phoenician",
    "Rejang",
    "Runic",
    "Samaritan",
    "Saurashtra",
    "Sharada",
    "Shavian",
    "Siddham",
    "Sinhala",
    "Sogdian",
    "Soyombo",
    "Sundanese",
    "Syriac",
    "Tagalog",
    "Tagbanwa",
    "Takri",
    "Tamil",
    "Tangsa",
    "Tangut",
    "Telugu",
    "Thaana",
    "Thai",
    "Tibetan",
    "Tifinagh",
    "Tirhuta",
    "Toto",
    "Ugaritic",
    "Vai",
    "Vithkuqi",
    "Wancho",
    "Yezidi",
    "Yi",
];

/// Assigned in Unicode 15, the version of Go.
const ASSIGNED: &str = r"\p{Age=15.0}";

/// The class of the `regex` crate for a name in Go's `\p{name}`, if Go knows the name.
pub(super) fn class(name: &str, negated: bool) -> Option<String> {
    let name = canonical(name);
    let negation = if negated { "^" } else { "" };
    let members = match name.as_str() {
        "Any" => r"\x{0}-\x{10FFFF}".to_owned(),
        "Ascii" => r"\x{0}-\x{7F}".to_owned(),
        "Assigned" => format!(r"\P{{gc=Cn}}&&{ASSIGNED}"),
        "Lc" => format!(r"\p{{gc=LC}}&&{ASSIGNED}"),
        _ => members(&name)?,
    };
    Some(format!("[{negation}{members}]"))
}

fn members(name: &str) -> Option<String> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, category)| *category);
    let category = CATEGORIES.iter().copied().find(|category| *category == name).or(alias);
    match category {
        // Surrogates occur in no text.
        Some("Cs") => Some(super::class::NOTHING.to_owned()),
        // Characters that were assigned later are not assigned for Go.
        Some(category @ ("C" | "Cn")) => Some(format!(r"\p{{gc={category}}}[^{ASSIGNED}]")),
        Some(category) => Some(format!(r"\p{{gc={category}}}&&{ASSIGNED}")),
        None => SCRIPTS.contains(&name).then(|| format!(r"\p{{sc={name}}}&&{ASSIGNED}")),
    }
}

/// The name with an upper case letter first, lower case letters behind and without underscores,
/// spaces and hyphens.
fn canonical(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    letters
        .enumerate()
        .map(|(at, c)| if at == 0 { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
        .collect()
}
