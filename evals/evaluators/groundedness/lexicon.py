"""Closed classes of English words that the features and checks use."""

_STOP_WORD_LIST = """
a about after all also am an and any are as at be because been before being between both but by
can could did do does doing down during each either for from further get gets got had has have
having he her here hers herself him himself his how however i if in into is it its itself just
like may me might more most must my myself near need needs no nor not now of off often on once one
only onto or other others otherwise our ours out over own per rather same shall she should since
so some such than that the their theirs them themselves then there therefore these they this those
though through thus to too toward towards under until up upon us very via was we were what when
where whether which while who whom whose why will with within without would yes yet you your yours
yourself please sorry thank thanks hello hi welcome regards
"""
STOP_WORDS = frozenset(_STOP_WORD_LIST.split())
"""Words that claim nothing by themselves; negators such as `not` are in `NEGATORS` too."""

_NEGATOR_LIST = """
no not never none neither nor nobody nothing nowhere without cannot can't won't don't doesn't
didn't isn't aren't wasn't weren't hasn't haven't hadn't wouldn't couldn't shouldn't mustn't
needn't hardly barely rarely seldom unlikely
"""
NEGATORS = frozenset(_NEGATOR_LIST.split())

_ANTONYM_LIST = """
increase decrease|increase reduce|increase lower|increase fall|rise fall|rise drop|rise decline
grow shrink|gain lose|gain loss|more less|more fewer|most least|high low|higher lower
highest lowest|large small|larger smaller|largest smallest|big small|big little|bigger smaller
great small|long short|longer shorter|longest shortest|fast slow|faster slower|quick slow
quickly slowly|early late|earlier later|before after|first last|begin end|start end|start stop
start finish|open close|open shut|opened closed|up down|above below|over under|upper lower
top bottom|left right|front back|north south|east west|northern southern|eastern western
inside outside|internal external|in out|enter leave|enter exit|arrive leave|arrive depart|come go
push pull|buy sell|buyer seller|lend borrow|win lose|winner loser|succeed fail|success failure
pass fail|accept reject|accept refuse|accept deny|accept decline|agree disagree|approve reject
allow forbid|allow prohibit|allow prevent|permit forbid|permit ban|legal illegal|true false
right wrong|correct incorrect|good bad|better worse|best worst|positive negative
advantage disadvantage|benefit harm|benefit risk|safe dangerous|safe unsafe|healthy unhealthy
easy difficult|easy hard|easier harder|simple complex|simple complicated|strong weak
stronger weaker|heavy light|thick thin|hard soft|hot cold|warm cool|warmer cooler|wet dry
clean dirty|full empty|rich poor|cheap expensive|cheaper costlier|new old|newer older|young old
younger older|modern ancient|recent old|always never|often rarely|common rare|usual unusual
frequent infrequent|all none|many few|every no|everyone nobody|always sometimes|major minor
majority minority|maximum minimum|max min|same different|similar different|equal unequal
include exclude|included excluded|with without|add remove|add subtract|multiply divide
create destroy|build destroy|build demolish|join leave|join separate|connect disconnect
attach detach|love hate|like dislike|happy sad|happy unhappy|satisfied dissatisfied
optimistic pessimistic|confident worried|calm anxious|excited bored|friend enemy|support oppose
supporter opponent|for against|attack defend|war peace|alive dead|live die|life death|birth death
born died|male female|man woman|men women|boy girl|father mother|son daughter|brother sister
husband wife|king queen|he she|his her|him her|day night|morning evening|am pm|summer winter
spring autumn|public private|domestic foreign|national international|local global|urban rural
natural artificial|natural synthetic|raw cooked|active inactive|active passive|direct indirect
regular irregular|formal informal|official unofficial|complete incomplete|finish continue
able unable|possible impossible|probable improbable|likely unlikely|known unknown
certain uncertain|clear unclear|visible invisible|available unavailable|necessary unnecessary
required optional|mandatory optional|voluntary compulsory|temporary permanent|fixed variable
static dynamic|single multiple|single married|one many|single double|whole part|entire partial
fully partially|expand contract|expand shrink|extend shorten|raise lower|lift drop|improve worsen
improve deteriorate|strengthen weaken|encourage discourage|promote hinder|help hinder|hurt heal
cause prevent|profit loss|profitable unprofitable|income expense|revenue cost|credit debit
asset liability|debt equity|export import|supply demand|employ dismiss|hire fire|hire dismiss
teach learn|teacher student|doctor patient|parent child|employer employee|landlord tenant
host guest|customer supplier|present absent|present past|past future|previous next
forward backward|ahead behind|near far|close distant|nearby remote|deep shallow|wide narrow
sharp dull|sharp blunt|smooth rough|loud quiet|noisy quiet|bright dark|light dark|black white
liquid solid|sweet bitter|sweet sour|fresh stale|remember forget|find lose|found lost|save waste
save spend|earn spend|give take|give receive|send receive|offer withdraw|ask answer
question answer|lead follow|leader follower|higher fewer|upward downward|uphill downhill
acid alkaline|acute chronic|benign malignant|superior inferior|deoxygenated oxygenated
oxidize reduce|absorb release|inhale exhale|freeze melt|freeze boil|heat cool|online offline
manual automatic|digital analog|wireless wired|hardware software|input output|upload download
enable disable|enabled disabled|activate deactivate|install uninstall|lock unlock|load unload
pack unpack|appear disappear|arrival departure|ascend descend|attract repel|conservative liberal
victory defeat|innocent guilty|convict acquit|confirm deny|prove disprove|reveal hide
reveal conceal|show hide|exceed miss|outperform underperform|overestimate underestimate
surplus deficit|boost cut|boost reduce|accelerate decelerate|accelerate slow|ahead late
significant insignificant|effective ineffective|sufficient insufficient|adequate inadequate
efficient inefficient|consistent inconsistent|stable unstable|reliable unreliable
familiar unfamiliar|fortunate unfortunate|lucky unlucky|popular unpopular|fair unfair
agreeable disagreeable|trust distrust|respect disrespect|honest dishonest|loyal disloyal
polite rude|kind cruel|generous selfish|brave cowardly|patient impatient|mature immature
perfect imperfect|moral immoral
"""
ANTONYM_PAIRS = tuple(
    (one, other)
    for pair in _ANTONYM_LIST.replace("\n", "|").split("|")
    for one, _, other in [pair.partition(" ")]
    if other
)

_UNITS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {word: number for number, word in enumerate(_UNITS.split())} | {
    word: 10 * number for number, word in enumerate(_TENS.split(), start=2)
}
_ORDINAL_LIST = """
third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth twentieth
"""
ORDINALS = {word: number for number, word in enumerate(_ORDINAL_LIST.split(), start=3)}
"""Without `first` and `second`, which have other meanings."""
_ROMAN_LIST = "II III IV VI VII VIII IX XI XII XIII XIV XV XVI XVII XVIII XIX"
_ROMAN_NUMBERS = (2, 3, 4, *range(6, 10), *range(11, 20))
ROMAN = dict(zip(_ROMAN_LIST.split(), _ROMAN_NUMBERS, strict=True))
"""Roman numerals of several letters, as in `World War II`."""
ROMAN_LETTERS = {"I": 1, "V": 5, "X": 10}
"""Those of one letter, which are numbers only behind some words, such as `Part`."""
_DECADE_LIST = "twenties thirties forties fifties sixties seventies eighties nineties"
DECADES = {name: f"19{number}0" for number, name in enumerate(_DECADE_LIST.split(), start=2)}
"""First years of decades."""

MULTIPLES = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 1000,
    "k": 1000,
    "million": 10**6,
    "mn": 10**6,
    "billion": 10**9,
    "bn": 10**9,
    "trillion": 10**12,
}

_MONTH_LIST = """
january february march april june july august september october november december
"""
MONTHS = {name[:3]: name for name in _MONTH_LIST.split()} | {"sept": "september"}
"""Full names by abbreviation. `may` is its own abbreviation."""

_DAY_LIST = "Mon monday Tue tuesday Tues tuesday Wed wednesday Thu thursday Thur thursday"
_DAYS = f"{_DAY_LIST} Thurs thursday Fri friday Sat saturday Sun sunday".split()
DAYS = dict(zip(_DAYS[::2], _DAYS[1::2], strict=True))
"""Full names of weekdays by abbreviation; `Sat` and `Sun` are other words, too."""

CURRENCIES = {
    "$": "dollar", "dollar": "dollar", "dollars": "dollar", "usd": "dollar",
    "€": "euro", "euro": "euro", "euros": "euro", "eur": "euro",
    "£": "sterling", "gbp": "sterling", "sterling": "sterling",
    "¥": "yen", "yen": "yen", "jpy": "yen", "₹": "rupee", "rupee": "rupee", "rupees": "rupee",
    "inr": "rupee",
}  # fmt: skip
UNITS_SHORT = {
    "km": "kilometer", "kms": "kilometer", "cm": "centimeter", "mm": "millimeter", "kg": "kilogram",
    "kgs": "kilogram", "g": "gram", "mg": "milligram", "lb": "pound", "lbs": "pound", "oz": "ounce",
    "ft": "foot", "feet": "foot", "mi": "mile", "yd": "yard", "ml": "milliliter",
    "mL": "milliliter",
    "L": "liter", "l": "liter", "wk": "week", "wks": "week", "deg": "degree",
    "hr": "hour", "hrs": "hour", "h": "hour", "min": "minute", "mins": "minute",
    "sec": "second", "secs": "second", "s": "second", "yr": "year", "yrs": "year",
    "F": "fahrenheit", "C": "celsius", "MB": "megabyte", "GB": "gigabyte", "tbsp": "tablespoon",
    "Tbsp": "tablespoon", "kilos": "kilogram",
    "tsp": "teaspoon", "m": "meter", "sq": "square",
}  # fmt: skip
"""Full names of units by abbreviation; applied only after a number."""
CONTRACTED = {
    "can't": ("can", "not"), "cannot": ("can", "not"), "won't": ("will", "not"),
    "shan't": ("shall", "not"), "ain't": ("is", "not"), "let's": ("let", "us"),
}  # fmt: skip
"""Irregular contractions, as two words each."""

_FOREIGN_LIST = """
anche att au auch auf aux av avec bir bu ce cette che como con da daha dans das dat del della
delle dem den der des det deze di dla dos een ein eine el em en er es est está et för für gli het
ikke il ile im inte ist için jest las le les los met mit más na nel nicht nie niet não och olarak
op os para pas por pour på que qui sie się som sono sont su sur são til um uma una und une van ve
von voor w werden wird z zijn zu är è że y la los las lo su sus al con entre desde hasta según fue
está están este esta estos estas muy también pero como más tiene son donde cuando du sur ce cette
ces qui ne pas avec sans sous été était leur leurs nous vous ils elles mais donc depuis où à elle
hay ça
aber aux avait avoir beim bis cada cela ces chaque comme costó dann depuis deux diese dieser dieses
donc durch eine einem einen einer eines elle entre eram erano eu fait foi fueron fut gegen ha haben
había hanno ihr ihre ist jede jeder kann keine keinen können lo lui mais mehr molto muito muchos
mucho même nach nessun noch nous nur où oder ohne oui outro parce però perché peut peuvent più
plusieurs pode podem porque puede pueden quando quanto questa questo qué quién sabe se seine selon
sehr ser seu sia siempre sin sind sobre sont sua tem toda todas todo todos tous tout toute toutes
très tutti unter voir wenn wer wie wurde wurden zum zur zwischen él uma um si ab alle alleen anche
apenas ausser bereits dal dalla dalle dès geen gibt hasta immer jusqu nei nella nelle nessuna ningún
nooit nunca nuovo pendant personne rien sauf sem senza seulement sempre senão solamente solo
soltanto somente sólo só sind täglich tutte uhr uniquement vanaf vers zonder zwei drei vier fünf
sechs acht neun zehn deux trois quatre cinq tres cuatro cinco ocho quattro cinque otto dois três
quatro twee drie vijf zes
"""
FOREIGN_FUNCTION_WORDS = frozenset(_FOREIGN_LIST.split())
"""Function words of other European languages."""
