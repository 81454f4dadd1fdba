"""What text addressed to a model looks like in other languages than English: data for `graft.intent.injection`.

A demand needs two parts, a verb and what it is about, so that ordinary prose about rules, reviews and risks in these
languages stays ordinary. Patterns are searched in text as `fold` and `within_sentences` leave it, with single spaces;
they are bounded like those in `phrases`, and the words before each occur in all it matches. Languages that are not
here are a gap that is known.
"""

from __future__ import annotations

import re
import unicodedata

_ACCENTS = re.compile("[\u0300-\u036f]")
_INNER_POINT = re.compile(r"\.(?=\S)")
_NEAR = r"[^.。!?;]{0,60}"


def fold(text: str) -> str:
    """Lower case without accents; what is written with or without them reads the same."""
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", text)).lower()


def within_sentences(text: str) -> str:
    """Folded text in which points stand only between sentences, not in the names of files."""
    return _INNER_POINT.sub("·", text)


def _near(first: str, second: str) -> str:
    return rf"(?:{first}){_NEAR}(?:{second})"


def _either(first: str, second: str) -> str:
    """Both, in any order: some languages put the verb last."""
    return f"{_near(first, second)}|{_near(second, first)}"


Phrase = tuple[str, tuple[str, ...], re.Pattern[str]]


def _phrase(marker: str, words: str, *patterns: str) -> Phrase:
    return marker, tuple(map(fold, words.split(";"))), re.compile(fold("|".join(patterns)))


_OVERRIDE, _VERDICT, _ADDRESS = "overriding_instructions", "verdict_dictated", "addressed_to_ai"

LATIN: tuple[Phrase, ...] = (
    # German
    _phrase(
        _OVERRIDE,
        "ignorier;missacht;vergiss;vergesst;erwähn;verschweig",
        _near(r"\b(?:ignorier|missacht|vergiss|vergesst)", r"anweisung|instruktion|\bvorgaben"),
        r"\b(?:vergiss|vergesst)\b[^.!?]{0,20}\bregeln\b",
        _near(r"\berwähne?n?\b", r"\bnicht\b[^.!?]{0,30}(?:zusammenfass|karte|bericht)"),
        rf"\berwähne?\b{_NEAR}(?:zusammenfass|karte|bericht|datei|änderung){_NEAR}\bnicht\b",
        r"\bverschweige?\b",
    ),
    _phrase(
        _VERDICT,
        "stufe;bewert;werte;markier;betracht;behandl",
        rf"\b(?:stufe|bewerte|werte|markiere|betrachte|behandle)\b{_NEAR}\bals"
        r" (?:trivial|unbedenklich|harmlos|sicher|ungefährlich|risikolos|unkritisch)\b",
    ),
    _phrase(
        _ADDRESS,
        " ki;sprachmodell;bist jetzt;bist nun;bist ab jetzt",
        r"\b(?:hinweis|nachricht|anweisung(?:en)?|wichtig) (?:für|an) (?:alle |die |jede )?(?:ki|sprachmodelle?)\b",
        r"\b(?:liebe|liebes|hallo|achtung,?) (?:ki|sprachmodell)\b",
        r"\b(?:wenn|falls|sofern) du eine? (?:ki|sprachmodell)\b",
        r"\bdu bist (?:jetzt|nun|ab jetzt) eine?\b",
    ),
    # French
    _phrase(
        _OVERRIDE,
        "ignore;oublie;ne mentionne;ne signale;ne parle",
        _near(r"\b(?:ignore|oublie)[zr]?\b", r"\b(?:instructions|consignes)\b"),
        r"\boublie[zr]?\b[^.!?]{0,20}\brègles\b",
        _near(r"\bne (?:mentionne|signale|parle)[zsr]? (?:pas|rien)\b",
              r"\b(?:résumé|carte|fichier|rapport|revue|modification)\b"),
    ),
    _phrase(
        _VERDICT,
        "class;evalu;consid;marqu;note",
        rf"\b(?:classe|classez|évalue|évaluez|considère|considérez|marque|marquez|note|notez)\b{_NEAR}\bcomme"
        r" (?:étant )?(?:trivial|triviale|sûre?|sans risque|inoffensif|inoffensive|anodine?|approuvée?)(?!\w)",
    ),
    _phrase(
        _ADDRESS,
        " ia;artificielle;modele de langage;es maintenant;es desormais;etes maintenant",
        r"\b(?:note|message|instructions|consigne) (?:aux?|à|pour) [^.!?]{0,25}\b(?:ia|intelligence artificielle)\b",
        r"\bsi (?:tu es|vous êtes) une? (?:ia|intelligence artificielle|modèle de langage)\b",
        r"\b(?:tu es|vous êtes) (?:maintenant|désormais) une?\b",
    ),
    # Spanish
    _phrase(
        _OVERRIDE,
        "ignor;olvid;descart;omiso;no mencion;no inform;no report",
        _near(
            r"\b(?:ignor[ae]n?|olvid[ae]n?|descart[ae]|caso omiso)\b",
            r"\b(?:instrucciones|indicaciones|directrices)\b",
        ),
        r"\bolvid[ae]\b[^.!?]{0,20}\breglas\b",
        _near(r"\bno (?:menciones?|informes?|reportes?)\b",
              r"\b(?:resumen|tarjeta|archivo|informe|revisión|cambio)\b"),
    ),
    _phrase(
        _VERDICT,
        "clasif;calif;consider;marca;marque;evalua;evalue",
        rf"\b(?:clasifi(?:ca|que)|califi(?:ca|que)|consider[ae]|mar(?:ca|que)|eval[uú][ae])\b{_NEAR}\bcomo"
        r" (?:trivial|segur[oa]|inofensiv[oa]|aprobad[oa]|sin riesgo)\b",
    ),
    _phrase(
        _ADDRESS,
        " ia;artificial;modelo de lenguaje;ahora eres",
        r"\b(?:nota|mensaje|instrucciones|aviso) (?:para|a) [^.!?]{0,25}\b(?:ia|inteligencia artificial)\b",
        r"\bsi eres una? (?:ia|inteligencia artificial|modelo de lenguaje)\b",
        r"\bahora eres una?\b",
    ),
    # Italian
    _phrase(
        _OVERRIDE,
        "ignora;dimentica;trascura;non menzion;non segnal",
        _near(r"\b(?:ignora|ignorate|dimentica|trascura)\b", r"\b(?:istruzioni|indicazioni|direttive)\b"),
        r"\bdimentica\b[^.!?]{0,20}\bregole\b",
        _near(r"\bnon (?:menzionare|segnalare)\b", r"\b(?:riepilogo|scheda|file|sommario|rapporto|modifica)\b"),
    ),
    _phrase(
        _VERDICT,
        "classifica;considera;valuta;segna",
        rf"\b(?:classifica|considera|valuta|segna)\b{_NEAR}\b(?:modifica|cambiamento|pull request|pr)"
        r" (?:come )?(?:banale|sicur[ao]|innocu[ao]|approvat[ao]|senza rischi)\b",
    ),
    _phrase(
        _ADDRESS,
        "ia;artificiale;modello linguistico;ora sei",
        r"\bse sei (?:un['’ ]?\s?ia|un'intelligenza artificiale|un modello linguistico)\b",
        r"\bnota per [^.!?]{0,25}\bia\b",
    ),
    # Portuguese
    _phrase(
        _OVERRIDE,
        "ignor;esque;desconsider;não mencion;não relat",
        _near(r"\b(?:ignor[ae]|esqueça|esquece|desconsidere)\b", r"\b(?:instruções|orientações|diretrizes)\b"),
        r"\b(?:esqueça|esquece)\b[^.!?]{0,20}\bregras\b",
        _near(r"\bnão (?:mencion[ea]|relat[ea])\b",
              r"\b(?:resumo|cartão|arquivo|ficheiro|relatório|alteração|mudança)\b"),
    ),
    _phrase(
        _VERDICT,
        "classifi;consider;avali;marque",
        rf"\b(?:classifi(?:que|ca)|consider[ae]|avali[ae]|marque)\b{_NEAR}\b(?:alteração|mudança|pull request|pr)"
        r" (?:como )?(?:trivial|segur[ao]|inofensiv[ao]|aprovad[ao]|sem risco)\b",
    ),
    _phrase(
        _ADDRESS,
        " ia;artificial;modelo de linguagem",
        r"\bse (?:você é|és) uma? (?:ia|inteligência artificial|modelo de linguagem)\b",
        r"\b(?:nota|mensagem|instruções) para [^.!?]{0,25}\b(?:ia|inteligência artificial)\b",
    ),
    # Dutch
    _phrase(
        _OVERRIDE,
        "negeer;vergeet;vermeld;noem",
        _near(r"\b(?:negeer|vergeet)\b", r"\b(?:instructies|aanwijzingen|opdrachten)\b"),
        r"\bvergeet\b[^.!?]{0,20}\bregels\b",
        _near(r"\b(?:vermeld|noem)\b", r"\bniet\b[^.!?]{0,30}(?:samenvatting|kaart|rapport)"),
    ),
    _phrase(
        _VERDICT,
        "beoordeel;classificeer;markeer;beschouw",
        rf"\b(?:beoordeel|classificeer|markeer|beschouw)\b{_NEAR}\bals (?:triviaal|veilig|onschadelijk|risicoloos)\b",
    ),
    # Polish
    _phrase(
        _OVERRIDE,
        "ignoruj;zapomnij",
        _near(r"\b(?:z?ignoruj|zapomnij)", r"\b(?:instrukcj|polece|wytyczn)"),
    ),
    _phrase(
        _VERDICT,
        "oceń;zaklasyfikuj;uznaj;oznacz",
        rf"\b(?:oceń|zaklasyfikuj|uznaj|oznacz)\b{_NEAR}\b(?:jako|za) (?:trywialn|bezpieczn|nieszkodliw)",
    ),
    # Turkish
    _phrase(
        _OVERRIDE,
        "talimat;yönerge",
        _near(r"\b(?:talimat|yönerge)", r"\b(?:yok say|görmezden gel|unut|dikkate alma)"),
    ),
    _phrase(
        _VERDICT,
        "önemsiz;güvenli;zararsız;risksiz",
        r"\b(?:önemsiz|güvenli|zararsız|risksiz) olarak (?:sınıfland|değerlendir|işaretle)",
    ),
)  # fmt: skip

# Searched only in text that is not ASCII.
OTHERS: tuple[Phrase, ...] = (
    # Russian and Ukrainian
    _phrase(
        _OVERRIDE,
        "игнорируй;ігноруй;забудь;не упоминай;не сообщай;не згадуй;не повідомляй",
        _near(r"(?:игнорируй|ігноруй|забудь)", r"инструкци|указани|інструкці|вказівк"),
        r"\bзабудь(?:те)? [^.!?]{0,20}правила",
        r"\bне (?:упоминай|сообщай|згадуй|повідомляй)",
    ),
    _phrase(
        _VERDICT,
        "оцени;классифицируй;считай;пометь;оціни;класифікуй;вважай;познач",
        _near(
            r"\b(?:оцени|классифицируй|считай|пометь|оціни|класифікуй|вважай|познач)(?:те)?\b",
            r"\b(?:тривиальн|безопасн|безвредн|тривіальн|безпечн|нешкідлив)",
        ),
    ),
    _phrase(
        _ADDRESS,
        "если ты;якщо ти",
        r"\b(?:если ты|якщо ти) (?:ии|ші|нейросеть|нейромережа|языковая модель|мовна модель|искусственный|штучний)",
    ),
    # Chinese
    _phrase(
        _OVERRIDE,
        "忽略;无视;無視;忽视;忘记;忘掉;不要",
        "(?:忽略|无视|無視|忽视|忘记|忘掉).{0,6}(?:之前|以上|上述|所有|先前|前面|一切).{0,8}(?:指令|指示|提示|规则|規則|命令)",
        "不要在?.{0,12}(?:摘要|总结|總結|卡片|评审|審查|审查|报告).{0,6}(?:提到|提及|说明|写)",
        "不要(?:提到|提及|报告).{0,30}(?:摘要|总结|卡片|评审|审查)",
    ),
    _phrase(
        _VERDICT,
        "评为;评估为;评定为;标记为;视为;归类为;判定为",
        "(?:评为|评估为|评定为|标记为|视为|归类为|判定为).{0,4}(?:无风险|低风险|安全|无害|琐碎|微不足道)",
    ),
    _phrase(
        _ADDRESS,
        "你是;你现在是",
        "(?:如果|若|假如)你是.{0,6}(?:人工智能|ai|大模型|语言模型|机器人)",
        "你现在是(?:一个|一名)",
    ),
    # Japanese
    _phrase(
        _OVERRIDE,
        "無視;忘れ;ないで",
        "(?:指示|命令|指令|プロンプト).{0,12}(?:無視|忘れ)",
        "(?:要約|サマリー|カード|レビュー).{0,40}(?:触れ|言及し|書か|報告し)ないで",
    ),
    _phrase(
        _VERDICT,
        "評価して;分類して;判定して;判断して",
        "(?:安全|無害|軽微|些細|問題ない|リスクなし).{0,12}(?:評価|分類|判定|判断)して",
    ),
    # Korean; its syllables are folded to two or three letters each.
    _phrase(
        _OVERRIDE,
        "무시;잊",
        _near("지시|명령|지침|프롬프트", "무시하|잊어|잊으"),
    ),
    _phrase(
        _VERDICT,
        "평가하;분류하;판단하;표시하",
        _near("안전|무해|사소|위험 없", "(?:평가|분류|판단|표시)하(?:세요|십시오|라|시오)"),
    ),
    # Arabic
    _phrase(
        _OVERRIDE,
        "تجاهل;انس",
        _near(r"\b(?:تجاهل|انس)", "التعليمات|الأوامر|الإرشادات"),
    ),
    _phrase(
        _VERDICT,
        "صنف;اعتبر",
        _near(r"\b(?:صنف|اعتبر)", "آمن|تافه|غير ضار"),
    ),
    # Hindi
    _phrase(
        _OVERRIDE,
        "निर्देश;आदेश",
        _near("निर्देश|आदेश", "अनदेखा|नज़रअंदाज़|भूल जा"),
    ),
)  # fmt: skip
